#!/bin/bash
mkdir -p /logs/verifier
python -sP -m pytest -rf /tests/test_outputs.py > /tmp/log
if ! grep -q FAILED /tmp/log; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
