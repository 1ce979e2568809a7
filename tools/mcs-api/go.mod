module mcsapi

go 1.25.0

require sigs.k8s.io/mcs-api v0.5.2
