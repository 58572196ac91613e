"""The Python API behind `import evalwright`: one module for each noun. Import its names from `evalwright`."""
