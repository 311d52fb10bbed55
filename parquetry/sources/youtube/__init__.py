"""YouTube videos and playlists: captions with timecodes."""
