"""The numbers of the paper's tables, as printed: mean and spread of each cell.

Each line is: data set | setting | method | mean spread, mean spread, ... in the order of the table's columns. MIL
tables print standard errors, those of LLP and PU standard deviations. The paper prints no numbers for the curves of
small data.

Reference:
    Shukla, Zeng, Ahmed, Van den Broeck. A Unified Approach to Count-Based Weakly-Supervised Learning. NeurIPS 2023.
"""

from __future__ import annotations

# Columns: bags of 8, 32, 128, 512. AUC of instances, over 5 seeds.
LLP = """
adult | [0,1/2] | PL | 0.8889 0.0024  0.8782 0.0036  0.8743 0.0039  0.8678 0.0085
adult | [0,1/2] | LMMCM | 0.8728 0.0019  0.8693 0.0047  0.8669 0.0041  0.8674 0.0040
adult | [0,1/2] | CL | 0.8984 0.0013  0.8848 0.0041  0.8743 0.0052  0.8703 0.0070
adult | [1/2,1] | PL | 0.8781 0.0038  0.8731 0.0035  0.8699 0.0057  0.8556 0.0180
adult | [1/2,1] | LMMCM | 0.8584 0.0164  0.8644 0.0052  0.8601 0.0045  0.8500 0.0186
adult | [1/2,1] | CL | 0.8854 0.0022  0.8738 0.0039  0.8675 0.0043  0.8607 0.0056
adult | [0,1] | PL | 0.8884 0.0030  0.8884 0.0008  0.8879 0.0025  0.8828 0.0051
adult | [0,1] | LMMCM | 0.8831 0.0026  0.8819 0.0006  0.8821 0.0017  0.8786 0.0052
adult | [0,1] | CL | 0.8985 0.0010  0.8891 0.0013  0.8871 0.0021  0.8790 0.0056
magic | [0,1/2] | PL | 0.8900 0.0095  0.8510 0.0032  0.8405 0.0110  0.8332 0.0149
magic | [0,1/2] | LMMCM | 0.8918 0.0077  0.8799 0.0113  0.8753 0.0157  0.8734 0.0092
magic | [0,1/2] | CL | 0.9088 0.0056  0.8830 0.0097  0.8926 0.0049  0.8864 0.0107
magic | [1/2,1] | PL | 0.9066 0.0016  0.8818 0.0108  0.8769 0.0101  0.8429 0.0443
magic | [1/2,1] | LMMCM | 0.8911 0.0083  0.8790 0.0091  0.8684 0.0046  0.8567 0.0292
magic | [1/2,1] | CL | 0.9105 0.0020  0.8980 0.0059  0.8851 0.0255  0.8816 0.0083
magic | [0,1] | PL | 0.9039 0.0029  0.8870 0.0037  0.9002 0.0092  0.8807 0.0200
magic | [0,1] | LMMCM | 0.9070 0.0026  0.9048 0.0058  0.9113 0.0058  0.8934 0.0097
magic | [0,1] | CL | 0.9173 0.0018  0.9102 0.0057  0.9146 0.0051  0.9088 0.0039
"""

# Columns: 50, 100, 150, 200, 300, 400, 500 training bags. "AUC" of bags, which the public code takes of rounded
# predictions, over 3 runs.
MIL = """
mnist | N(10,2) | Gated Attention | 0.775 0.034  0.894 0.012  0.935 0.005  0.939 0.006  0.963 0.002  0.959 0.002  0.966 0.003
mnist | N(10,2) | Attention | 0.807 0.026  0.913 0.006  0.940 0.004  0.942 0.007  0.957 0.002  0.961 0.005  0.965 0.004
mnist | N(10,2) | CL | 0.818 0.024  0.906 0.009  0.929 0.005  0.946 0.001  0.952 0.004  0.962 0.002  0.963 0.002
mnist | N(50,10) | Gated Attention | 0.943 0.005  0.949 0.009  0.970 0.005  0.977 0.001  0.983 0.002  0.986 0.004  0.987 0.002
mnist | N(50,10) | Attention | 0.936 0.010  0.962 0.006  0.970 0.001  0.977 0.002  0.981 0.002  0.987 0.001  0.987 0.002
mnist | N(50,10) | CL | 0.939 0.010  0.960 0.002  0.964 0.007  0.972 0.002  0.982 0.003  0.982 0.001  0.987 0.002
mnist | N(100,20) | Gated Attention | 0.975 0.003  0.981 0.004  0.992 0.002  0.987 0.004  0.996 0.001  0.998 0.001  0.990 0.004
mnist | N(100,20) | Attention | 0.984 0.001  0.982 0.001  0.996 0.000  0.987 0.007  0.992 0.004  0.994 0.002  0.998 0.000
mnist | N(100,20) | CL | 0.981 0.007  0.989 0.000  0.996 0.002  0.995 0.001  0.996 0.002  0.993 0.003  0.999 0.001
"""  # noqa: E501

# The same columns. Accuracy of instances.
MIL_INSTANCE_ACCURACY = """
mnist | N(10,2) | Instance-Max | 0.8714 0.0015  0.9577 0.0096  0.9494 0.0232  0.9845 0.0009  0.9885 0.0004  0.9903 0.0008  0.9908 0.0004
mnist | N(10,2) | CL | 0.9551 0.0055  0.9780 0.0015  0.9826 0.0014  0.9864 0.0005  0.9906 0.0001  0.9905 0.0007  0.9916 0.0003
mnist | N(50,10) | Instance-Max | 0.9398 0.0010  0.9415 0.0008  0.9513 0.0113  0.9686 0.0123  0.9849 0.0010  0.9848 0.0008  0.9867 0.0008
mnist | N(50,10) | CL | 0.9732 0.0009  0.9776 0.0009  0.9799 0.0010  0.9816 0.0005  0.9839 0.0013  0.9864 0.0006  0.9865 0.0014
mnist | N(100,20) | Instance-Max | 0.9446 0.0007  0.9462 0.0005  0.9583 0.0076  0.9700 0.0035  0.9750 0.0017  0.9776 0.0008  0.9695 0.0097
mnist | N(100,20) | CL | 0.9695 0.0010  0.9717 0.0011  0.9759 0.0013  0.9764 0.0006  0.9780 0.0001  0.9805 0.0008  0.9798 0.0003
"""  # noqa: E501

# The same columns. "AUC" of instances, of rounded predictions.
MIL_INSTANCE_AUC = """
mnist | N(10,2) | Instance-Max | 0.4904 0.0054  0.8171 0.0465  0.7740 0.1072  0.9288 0.0064  0.9460 0.0022  0.9562 0.0037  0.9603 0.0016
mnist | N(10,2) | CL | 0.8341 0.0135  0.9040 0.0146  0.9291 0.0070  0.9394 0.0005  0.9571 0.0021  0.9592 0.0029  0.9647 0.0012
mnist | N(50,10) | Instance-Max | 0.4956 0.0007  0.4965 0.0003  0.5960 0.0821  0.7297 0.0959  0.8566 0.0088  0.8554 0.0080  0.8733 0.0048
mnist | N(50,10) | CL | 0.7518 0.0090  0.7900 0.0081  0.8125 0.0106  0.8261 0.0064  0.8473 0.0064  0.8717 0.0063  0.8709 0.0120
mnist | N(100,20) | Instance-Max | 0.4974 0.0002  0.5007 0.0016  0.6170 0.0571  0.7099 0.0311  0.7546 0.0164  0.7792 0.0080  0.7102 0.0867
mnist | N(100,20) | CL | 0.7008 0.0077  0.7214 0.0102  0.7617 0.0130  0.7673 0.0059  0.7832 0.0011  0.8085 0.0084  0.8007 0.0032
"""  # noqa: E501

# Columns: accuracy, "AUC", F1, precision, recall of bags, over 5 runs of 10 folds.
COLON = """
colon | 10-fold | Gated Attention | 0.909 0.014  0.908 0.013  0.886 0.021  0.916 0.020  0.879 0.020
colon | 10-fold | Attention | 0.893 0.015  0.890 0.008  0.876 0.017  0.908 0.016  0.879 0.018
colon | 10-fold | CL | 0.915 0.008  0.912 0.010  0.903 0.010  0.936 0.014  0.898 0.007
"""

# Columns: CL-expect, CL, CVIR, nnPU, uPU (which the table calls nPU). Accuracy in percent, over 3 runs.
PU = """
binarized-mnist | mixture 0.5 | 95.9 0.15  96.4 0.01  96.3 0.07  96.1 0.14  95.2 0.19
mnist17 | mixture 0.5 | 98.7 0.17  99.0 0.19  98.7 0.09  98.4 0.20  98.4 0.09
binarized-cifar | mixture 0.5 | 79.2 0.27  80.1 0.34  82.3 0.18  77.2 1.03  76.7 0.74
cifar-cat-dog | mixture 0.5 | 76.5 1.86  74.8 1.64  73.3 0.94  71.8 0.33  68.8 0.53
"""


def rows(block: str) -> list[tuple[list[str], list[tuple[float, float]]]]:
    """The words before each line's numbers, and the numbers as (mean, spread).

    Examples:
        >>> rows("adult | [0,1] | CL | 0.8985 0.0010  0.8891 0.0013")
        [(['adult', '[0,1]', 'CL'], [(0.8985, 0.001), (0.8891, 0.0013)])]
    """
    found = []
    for line in block.strip().splitlines():
        *words, numbers = (part.strip() for part in line.split(" | "))
        values = [float(number) for number in numbers.split()]
        found.append((words, list(zip(values[::2], values[1::2], strict=True))))
    return found
