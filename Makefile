# `make test` is all that a change must pass.
.PHONY: test bench docs

test:
	@bash ci/test.sh

# How fast the simulator is: one JSON line a case.
bench:
	cargo bench -p slowstart-lab --bench speed

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
