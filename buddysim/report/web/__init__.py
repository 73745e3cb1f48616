"""Reports as one HTML file that needs no network: tables that sort, charts with hover values, a part for each workload.

Charts are Plotly's, whose library is part of the file.
"""
