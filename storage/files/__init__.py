"""Files of a corpus: on this machine or an object store, and on disk before they count."""
