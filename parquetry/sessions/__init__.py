"""What was learned in finished chats: read, distilled, compared with what is known."""
