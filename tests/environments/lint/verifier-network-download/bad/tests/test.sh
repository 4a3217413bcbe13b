#!/bin/bash
mkdir -p /logs/verifier
curl -o /tmp/expected.csv https://example.org/expected.csv
if cmp /tmp/expected.csv /app/total.csv; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
