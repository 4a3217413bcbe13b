#!/bin/bash
mkdir -p /logs/verifier
python -sP -m pytest /tests/test_outputs.py || true
if [ $? -eq 0 ]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
