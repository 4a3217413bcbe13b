#!/usr/bin/env bash
# Run by the Postgres image on an empty volume: the service's own role, which is no superuser, and its database.
set -euo pipefail
psql --username "$POSTGRES_USER" --no-psqlrc --set ON_ERROR_STOP=1 --set password="$(cat /run/secrets/inspector_password)" <<'SQL'
CREATE ROLE inspector LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE DATABASE inspector OWNER inspector;
REVOKE ALL ON DATABASE inspector FROM PUBLIC;
SQL
