"""backstay: agents that hold fast, ask first, and can be taken back."""
