"""What each opcode does, by family."""
