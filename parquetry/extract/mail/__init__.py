"""E-mail: headers, bodies and attachments."""
