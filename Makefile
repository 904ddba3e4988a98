.PHONY: field check test fuzz bless pictures bench results seeds docs kernel uml test-kernels playground book wheel aarch64 sbom dist test-dist

# The fast tier, for while you work: formatting, clippy, unit tests and the main tests of algorithms and endpoint.
check:
	@bash ci/test.sh check

# Everything that a change must pass. What this machine cannot run is listed as skipped at the end.
test:
	@bash ci/test.sh test

# Runs every fuzz target for a minute. `ci/fuzz.sh SECONDS TARGET..` chooses.
fuzz:
	@bash ci/fuzz.sh

# Rewrites what tests compare to the byte, after an intended change of results: the golden rows, docs/evidence/compare-geo.md, and the table and picture of the README.
bless:
	@bash ci/bless.sh

# Draws the pictures of the README and of the documents from this version.
pictures:
	@bash ci/pictures.sh

# Speed of the simulator, one JSON line a case, beside a bare loop; and instructions a packet, if valgrind is there.
bench:
	cargo bench -p slowstart-sim --bench speed
	@bash ci/instructions.sh

# Runs every experiment of the papers, writes their pages to target/papers, and rewrites the verdicts in docs/evidence/papers. Fails if a
# verdict is not the recorded one.
results:
	mkdir -p target/papers && cp docs/evidence/papers/claims.jsonl target/papers
	cargo run --locked --profile published -p slowstart-cli --features quic -- reproduce --all --out target/papers
	cp target/papers/README.md target/papers/claims.jsonl docs/evidence/papers

# The same with another seed. Fails if a claim that holds now differs, or the reverse.
seeds:
	cargo run --locked --profile published -p slowstart-cli --features quic -- reproduce --all --seed 2

# Predicts each recording of the folder DIR (kernel logs, results of iperf3 and nuttcp) by others of its network, and says what the predictions cover.
field:
	cargo run --locked --release -p slowstart-research --bin field -- "$(DIR)"

# Builds the playground, a static folder with the simulator for a browser, in target/playground. See docs/guide/browser.md.
playground:
	@bash ci/playground.sh target/playground

# Builds the book with the playground inside, a static folder, in target/book-html.
book:
	@bash ci/book.sh target/book-html

# Builds the Python package for release in target/python/wheels. See docs/guide/python.md.
wheel:
	@bash ci/python.sh wheel

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Builds the command with the kernel feature, and the objects for bpftool in target/bpf. See docs/reference/kernel.md.
kernel:
	@bash ci/kernel.sh

# Builds a Linux kernel as a program for `--engine linux:`, once: KERNEL is 6.1, 6.12 or a kernel tree. Prints its path. See docs/reference/linux.md.
uml:
	@bash ci/uml.sh "$(KERNEL)"

# Compares queue disciplines, token buckets and netem's elements with the kernel's own code, then tests the objects on Debian's kernels 6.1, 6.12 and 7.x in qemu, without hardware acceleration: minutes for each.
test-kernels:
	@bash ci/qdisc/record.sh
	@bash ci/kernels.sh

# Builds the command and the tests of the algorithms for aarch64, and runs them in qemu: the rows are those of this machine.
aarch64:
	@bash ci/aarch64.sh

# Writes the bill of materials of the command to target/sbom. Needs cargo-cyclonedx.
sbom:
	@bash ci/sbom.sh

# Builds what is published for this processor in target/dist: tarball, Debian package, wheel, checksums.
dist:
	@bash ci/dist.sh

# Installs the package of target/dist in fresh Debian 12 and 13 without network and without a compiler, and runs it. Needs root and debootstrap.
test-dist:
	@bash ci/test-dist.sh
