#!/bin/sh
# Backs up drives R and S every night at 02:30 to the vault at the bank's old strong room, and drops what is too old.
set -eu

KEEP_WEEKS=13
VAULT="backup@vault.hollinreed.example:/srv/nightly"
TODAY=$(date +%Y-%m-%d)

for drive in R S; do
    rsync --archive --delete --link-dest="../latest" "/drives/$drive/" "$VAULT/$TODAY-$drive/"
done

# Restoring is rehearsed on the first Tuesday of each quarter; a backup that nobody has restored is a hope.
ssh backup@vault.hollinreed.example "find /srv/nightly -maxdepth 1 -mtime +$((KEEP_WEEKS * 7)) -exec rm -r {} +"
