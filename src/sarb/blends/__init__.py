"""blends"""
