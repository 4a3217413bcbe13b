#!/bin/bash
mkdir -p /logs/verifier
pkill -f python
if python -sP /tests/check.py; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
