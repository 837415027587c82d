"""Run the app: ``python -m clnet.apps.deploy -i INPUT -o OUTPUT -m BUNDLE``."""

import sys

from clnet.apps.deploy.application import ClnetApp
from clnet.errors import ClnetError
from clnet.files import CANNOT_WRITE, WriteError
from clnet.predict.summary import describe


def main() -> int:
    """The exit status is that of `clnet predict`."""
    try:
        app = ClnetApp()
        with app.held:
            app.run()
            if app.writer is not None and app.writer.error is not None:
                raise app.writer.error
    except ClnetError as error:
        sys.stderr.write(f"clnet deploy: {error}\n")
        return CANNOT_WRITE if isinstance(error, WriteError) else 2
    if app.writer is None or app.writer.summary is None:
        sys.stderr.write("clnet deploy: did not finish; the lines above say why\n")
        return 2
    sys.stdout.write(describe(app.writer.summary, app.writer.output_path) + "\n")
    return app.writer.summary.exit_status


if __name__ == "__main__":
    sys.exit(main())
