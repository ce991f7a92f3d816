try:
    import sys

    from holdfast.cli import main

    code = main()
except KeyboardInterrupt:
    import sys

    print("\nstopped", file=sys.stderr)
    code = 1
sys.exit(code)
