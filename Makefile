# `make test` is all that a change must pass.
.PHONY: test bless bench results seeds docs kernel test-kernels

test:
	@bash ci/test.sh

# After a change of behaviour that is meant: the golden rows and the README's result, written anew.
bless:
	@bash ci/bless.sh

# How fast the simulator is: one JSON line a case.
bench:
	cargo bench -p slowstart-lab --bench speed

# The experiments of the five papers: docs/results written anew. It fails if a verdict is not the one recorded.
results:
	cargo run --locked --release -p slowstart-cli -- reproduce --all --out docs/results

# The same with another seed: it fails if a claim that holds then differs, or one that differs holds.
seeds:
	cargo run --locked --release -p slowstart-cli -- reproduce --all --seed 2

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# The command with startups in the running kernel, and their objects for bpftool in target/bpf. See docs/kernel.md.
kernel:
	@bash ci/kernel.sh

# The objects on Debian's kernels of 6.1, 6.12 and 7.x, under qemu in software: some minutes each.
test-kernels:
	@bash ci/kernels.sh
