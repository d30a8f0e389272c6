#!/bin/sh
# Make the secrets that docker-compose.yml needs, each in a file of its own; those that are there stay as they are.
#
#   sh deploy/secrets.sh              makes them in ./secrets
#   sh deploy/secrets.sh /srv/keys    makes them there; then set SECRETS_DIR=/srv/keys in .env
#
# The folder is for you only. The files in it can be read by the users inside the containers, who are others.
set -eu
folder="${1:-secrets}"
umask 022
mkdir -p "$folder"
chmod 700 "$folder"

random() { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

# Writes standard input into a new file; an empty one is for you to fill.
keep() {
    if [ -e "$folder/$1" ]; then
        cat >/dev/null
    else
        cat >"$folder/$1.new"
        mv "$folder/$1.new" "$folder/$1"
        echo "made $folder/$1${2:+: $2}"
    fi
}

random | keep POSTGRES_PASSWORD
random | keep BACKSTAY_DATABASE_PASSWORD
echo "postgresql://backstay:$(cat "$folder/BACKSTAY_DATABASE_PASSWORD")@postgres/backstay" | keep BACKSTAY_DATABASE_URL
random | keep BACKSTAY_APPROVER_KEY
head -c 32 /dev/urandom | base64 | tr '+/' '-_' | keep BACKSTAY_ENCRYPTION_KEYS
# 32 random bytes are a key for Ed25519; docs/ledger.md says how to get the public key.
head -c 32 /dev/urandom | base64 | keep BACKSTAY_LEDGER_KEY
random | keep BACKSTAY_WEBHOOK_KEY
random | keep BACKSTAY_WEB_SECRET
random | keep BACKSTAY_WEB_PROXY_SECRET
printf '' | keep OPENAI_API_KEY "write the key of your model into it"
printf '' | keep BACKSTAY_NOTIFY_URLS "addresses that are told of requests, if there are any"
printf '' | keep BACKSTAY_SMTP_URL "the mail server, if people are told by mail"
printf '' | keep SLACK_APP_TOKEN "the app-level token, if people approve in Slack"
printf '' | keep SLACK_BOT_TOKEN "the bot token, if people approve in Slack"
