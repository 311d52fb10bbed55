"""Mail: headers, bodies and attachments."""
