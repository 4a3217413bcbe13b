#!/bin/bash
mkdir -p /logs/verifier
kill "$(cat /tmp/server.pid)"
if python -sP /tests/check.py; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
