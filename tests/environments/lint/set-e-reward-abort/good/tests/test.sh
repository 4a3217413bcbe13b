#!/bin/bash
set -e
mkdir -p /logs/verifier
echo 0 > /logs/verifier/reward.txt
python -sP -m pytest /tests/test_outputs.py
echo 1 > /logs/verifier/reward.txt
