"""From the words of a command line to checked settings: YAML files, rules, composition by Hydra."""
