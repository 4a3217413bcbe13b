#!/bin/bash
mkdir -p /logs/verifier
cd /app
if python -sP -m pytest /tests/test_outputs.py; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
