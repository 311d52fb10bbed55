"""Writers of the example handbook's binary documents, one file per format family."""
