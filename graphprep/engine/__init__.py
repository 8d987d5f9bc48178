"""Runs tasks on threads under one memory limit, and keeps the ledger of it; knows no graphs."""
