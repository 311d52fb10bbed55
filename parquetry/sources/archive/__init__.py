"""Archives as folders: zip and tar, read member by member."""
