"""CVAT for images 1.1, exported from a project with subsets: tags, shapes, attributes, an empty image."""

from pathlib import Path

from tests.data.fixtures import write_image
from tests.data.formats import Example

WHEN = "2024-03-09 21:52:49.513742+00:00"
TEXT = f"""<?xml version="1.0" encoding="utf-8"?>
<annotations>
  <version>1.1</version>
  <meta>
    <project>
      <id>7</id>
      <name>animals</name>
      <created>{WHEN}</created>
      <updated>{WHEN}</updated>
      <labels>
        <label>
          <name>dog &amp; friends</name>
          <color>#fa3253</color>
          <type>tag</type>
          <attributes>
            <attribute>
              <name>breed</name>
              <mutable>False</mutable>
              <input_type>text</input_type>
              <default_value></default_value>
              <values></values>
            </attribute>
          </attributes>
        </label>
        <label>
          <name>cat</name>
          <color>#24b353</color>
          <type>any</type>
          <attributes>
          </attributes>
        </label>
        <label>
          <name>wheel</name>
          <color>#33ddff</color>
          <type>rectangle</type>
          <attributes>
          </attributes>
        </label>
        <label>
          <name>tree</name>
          <color>#ffffff</color>
          <type>tag</type>
          <attributes>
          </attributes>
        </label>
      </labels>
      <subsets>
        Train
        Test
        Validation
      </subsets>
      <owner>
        <username>admin</username>
        <email></email>
      </owner>
    </project>
    <dumped>{WHEN}</dumped>
  </meta>
  <image id="0" name="a.jpg" subset="Train" task_id="4" width="8" height="8">
    <tag label="cat" source="manual">
    </tag>
    <tag label="dog &amp; friends" source="manual">
      <attribute name="breed">collie</attribute>
    </tag>
    <box label="wheel" source="manual" occluded="0" xtl="1.00" ytl="1.00" xbr="5.00" ybr="5.00" z_order="0">
    </box>
  </image>
  <image id="1" name="deep/b.jpg" subset="Train" task_id="4" width="8" height="8">
  </image>
  <image id="2" name="a.jpg" subset="Test" task_id="5" width="8" height="8">
    <tag label="tree" source="auto">
    </tag>
    <polygon label="cat" source="manual" occluded="0" points="1.00,1.00;5.00,1.00;5.00,5.00" z_order="1">
    </polygon>
  </image>
  <image id="3" name="c.jpg" subset="Validation" task_id="6" width="8" height="8">
    <tag label="cat" source="manual">
    </tag>
  </image>
</annotations>
"""


def example(root: Path) -> Example:
    names = ["Train/a.jpg", "Train/deep/b.jpg", "Test/a.jpg", "Validation/c.jpg"]
    for number, name in enumerate(names):
        write_image(root / "images" / name, number, (8, 8))
    (root / "annotations.xml").write_text(TEXT, encoding="utf-8")
    return Example(
        source=str(root / "annotations.xml"),
        options={"unlisted": "unknown", "shapes": "ignore"},
        categories=["dog & friends", "cat", "tree"],
        splits={
            "train": {"Train/a.jpg": [1, 1, 0], "Train/deep/b.jpg": [0, 0, 0]},
            "test": {"Test/a.jpg": [0, 0, 1]},
            "valid": {"Validation/c.jpg": [0, 1, 0]},
        },
        files=[root / "annotations.xml"],
        ambiguous={
            "unlisted": [
                "-o unlisted=absent: 4 present, 8 absent, 0 unknown",
                "-o unlisted=unknown: 4 present, 0 absent, 8 unknown",
            ],
            "shapes": [
                "contains shapes (1 box, 1 polygon) as well as 4 tags",
                "-o shapes=ignore: 4 present",
                "-o shapes=present: 6 present",
            ],
        },
    )
