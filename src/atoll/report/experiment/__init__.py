"""An experiment: its file, and the paper's numbers beside ours."""
