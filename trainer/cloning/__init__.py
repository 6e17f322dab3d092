"""Behaviour cloning: learning to do what somebody showed."""
