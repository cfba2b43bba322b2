"""Speed, memory and accuracy beside other libraries; see README.md in this folder."""
