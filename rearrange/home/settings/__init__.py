"""From the words of a command line to checked settings: YAML files, rules, composition by Hydra."""

from rearrange.home import own_packages

own_packages.claim("trainer")  # whose rules of settings all of them have
