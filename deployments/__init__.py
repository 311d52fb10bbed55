"""How flows are scheduled and served."""
