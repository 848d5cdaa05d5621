# Aliases of ./run, which does the work.
.PHONY: serve test check bench eval

serve test check bench eval:
	@./run $@ $(ARGS)
