"""Videos and playlists of YouTube: captions with timecodes."""
