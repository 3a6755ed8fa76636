"""Graph breaks: their cost, their place, and what is alive over them."""
