#!/bin/bash
mkdir -p /logs/verifier
cat /app/score.txt > /logs/verifier/reward.txt
