"""Runs tasks on threads under one memory budget; knows no graphs."""
