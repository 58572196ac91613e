class App:
    pass
