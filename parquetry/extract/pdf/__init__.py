"""PDF: text with its layout, metadata, attachments, and pages read by OCR."""
