"""Who made a report, as its tags say."""

MANUFACTURER = "clnet"
ALGORITHM = "CL-Net"
