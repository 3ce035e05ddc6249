module peers-reports

go 1.27
