"""From people's labels to a probability that means what it says: how often each check was right, and one model a project.

labels     what a person judged, with what the checks had said and the probability with which it was looked at
records    each check's right and wrong findings, caught and missed faults, in effective labels
model      what is read on the road of a trajectory: needs neither numpy nor scipy
fitting    noisy-OR, then Platt's two numbers, then a logistic regression, by how many labels there are
measuring  log loss, Brier score and calibration error, with intervals
choosing   champion and challenger

Everything here is pure; labels are read, and models kept, by the use case above it.
"""
