#!/bin/bash
pip install pandas
python /app/sum.py
