"""The command line: commands, options and what people see."""
