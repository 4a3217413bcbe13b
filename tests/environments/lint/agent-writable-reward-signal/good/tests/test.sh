#!/bin/bash
mkdir -p /logs/verifier
python -sP /tests/score.py /app/total.txt > /logs/verifier/reward.txt
