"""The parts of the model file: archive, arrays, header, older formats, and its place on disk; see `gputree.io`."""
