"""Safe and polite web requests, for addresses that others may have chosen."""
