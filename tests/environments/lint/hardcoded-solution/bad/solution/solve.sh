#!/bin/bash
echo 2202 > /app/total.txt
