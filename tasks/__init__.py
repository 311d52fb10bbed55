"""One batch in, one report out: shells that time, contain and count; and the engines that run them."""
