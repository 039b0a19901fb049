"""`python -m bots.slack`: the Slack process, configured by the environment and `.env`.

It must not know anything: bots/slack/app.py does.
"""

import sys

from bots.slack.app import main

if __name__ == "__main__":
    sys.exit(main())
