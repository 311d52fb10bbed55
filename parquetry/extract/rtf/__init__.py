"""Rich text (RTF): the format of older word processors, and of bodies of Outlook messages."""
